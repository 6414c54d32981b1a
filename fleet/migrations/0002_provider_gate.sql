-- The rate limits of providers' accounts, which all tenants that hold a key share. A call is named by a hash.

UPDATE fleet SET version = 2, min_reader = 2;

CREATE TABLE bucket (
    name text PRIMARY KEY CHECK (name ~ '^[a-z][a-z0-9-]{0,30}$'),
    -- A list of {"seconds", "calls", "tokens"}.
    windows jsonb NOT NULL,
    -- The database server in which the calls below are whole, and what tenants compare; see find_loss.
    system text NOT NULL DEFAULT (pg_control_system()).system_identifier::text,
    incarnation bigint NOT NULL DEFAULT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint,
    is_accepted boolean NOT NULL DEFAULT false,
    revision bigint NOT NULL DEFAULT 0,
    lost_at timestamptz,
    lost_why text,
    -- The number of the newest call. A call gets its number while this row is locked, so the cap-th newest one is found
    -- by its number.
    last_number bigint NOT NULL DEFAULT 0,
    newest timestamptz,
    doubted_since timestamptz,
    back_off_set timestamptz,
    back_off_until timestamptz,
    -- `<tenant>/<call>`.
    probe_call text,
    probe_since timestamptz
);

ALTER TABLE tenant ADD COLUMN bucket text REFERENCES bucket (name);

CREATE TABLE gate_call (
    bucket text NOT NULL REFERENCES bucket (name) ON DELETE CASCADE,
    number bigint NOT NULL,
    tenant text NOT NULL,
    -- The same within the tenant.
    tenant_number bigint NOT NULL,
    call text NOT NULL,
    reserved_at timestamptz NOT NULL,
    -- What it may use, and once it is settled, what it used.
    tokens bigint NOT NULL,
    settled boolean NOT NULL DEFAULT false,
    PRIMARY KEY (bucket, number),
    UNIQUE (bucket, tenant, call),
    UNIQUE (bucket, tenant, tenant_number)
);
CREATE INDEX gate_call_by_time ON gate_call (bucket, reserved_at) INCLUDE (tenant, tokens);

-- The tokens of a minute, of each tenant and of all as ''. Long windows are added up from these.
CREATE TABLE gate_minute (
    bucket text NOT NULL REFERENCES bucket (name) ON DELETE CASCADE,
    tenant text NOT NULL,
    minute timestamptz NOT NULL,
    tokens bigint NOT NULL,
    PRIMARY KEY (bucket, tenant, minute)
);

CREATE TABLE gate_tenant (
    bucket text NOT NULL REFERENCES bucket (name) ON DELETE CASCADE,
    tenant text NOT NULL REFERENCES tenant (id),
    last_number bigint NOT NULL DEFAULT 0,
    -- When a window itself refused it last.
    refused_at timestamptz,
    PRIMARY KEY (bucket, tenant)
);

-- The bucket of the role that is connected.
CREATE FUNCTION connected_bucket() RETURNS text LANGUAGE sql STABLE
    RETURN (SELECT bucket FROM tenant WHERE id = connected_tenant());

GRANT SELECT ON bucket TO steward_tenant;
GRANT UPDATE (incarnation, is_accepted, system, revision, lost_at, lost_why, last_number, newest, doubted_since, back_off_set,
    back_off_until, probe_call, probe_since) ON bucket TO steward_tenant;
GRANT SELECT, INSERT, UPDATE, DELETE ON gate_call, gate_minute, gate_tenant TO steward_tenant;
GRANT SELECT, INSERT, UPDATE, DELETE ON bucket, gate_call, gate_minute, gate_tenant TO steward_operator;

ALTER TABLE bucket ENABLE ROW LEVEL SECURITY;
ALTER TABLE gate_call ENABLE ROW LEVEL SECURITY;
ALTER TABLE gate_minute ENABLE ROW LEVEL SECURITY;
ALTER TABLE gate_tenant ENABLE ROW LEVEL SECURITY;
CREATE POLICY of_tenant ON bucket TO steward_tenant USING (name = connected_bucket());
CREATE POLICY of_tenant ON gate_call TO steward_tenant
    USING (bucket = connected_bucket()) WITH CHECK (bucket = connected_bucket());
CREATE POLICY of_tenant ON gate_minute TO steward_tenant
    USING (bucket = connected_bucket()) WITH CHECK (bucket = connected_bucket());
CREATE POLICY of_tenant ON gate_tenant TO steward_tenant
    USING (bucket = connected_bucket()) WITH CHECK (bucket = connected_bucket());
CREATE POLICY of_operator ON bucket TO steward_operator USING (true) WITH CHECK (true);
CREATE POLICY of_operator ON gate_call TO steward_operator USING (true) WITH CHECK (true);
CREATE POLICY of_operator ON gate_minute TO steward_operator USING (true) WITH CHECK (true);
CREATE POLICY of_operator ON gate_tenant TO steward_operator USING (true) WITH CHECK (true);
