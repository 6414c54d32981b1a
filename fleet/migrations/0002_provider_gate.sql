-- The rate limits of providers' accounts, which all tenants that hold a key share. A call is named by a hash.

-- A build that does not know the gate would call without it, so it must not start.
UPDATE fleet SET version = 2, min_reader = 2;

-- What a tenant has seen in another fleet says nothing about this one.
ALTER TABLE fleet ADD COLUMN id text NOT NULL DEFAULT gen_random_uuid()::text;

-- What an operator sets. Whoever changes the state or the calls of a bucket locks this row first: it hardly ever has a newer
-- version, so those who wait for it do not chase one.
CREATE TABLE bucket (
    name text PRIMARY KEY CHECK (name ~ '^[a-z][a-z0-9-]{0,30}$'),
    -- A list of {"seconds", "calls", "tokens"}.
    windows jsonb NOT NULL CHECK (jsonb_array_length(windows) > 0),
    -- Never changed. A role may lock a row only if it may update some column of it.
    lock boolean NOT NULL DEFAULT true
);

CREATE TABLE bucket_state (
    bucket text PRIMARY KEY REFERENCES bucket (name) ON DELETE CASCADE,
    -- The database server in which the calls below are whole, and what tenants compare; see find_loss.
    system text NOT NULL DEFAULT (pg_control_system()).system_identifier::text,
    incarnation bigint NOT NULL DEFAULT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint,
    is_accepted boolean NOT NULL DEFAULT false,
    lost_at timestamptz CHECK (isfinite(lost_at)),
    lost_why text CHECK (lost_why IN ('moved', 'recreated', 'restored')),
    -- The number of the newest call. A call gets its number under the lock, so the cap-th newest one is found by its number.
    last_number bigint NOT NULL DEFAULT 0,
    newest timestamptz CHECK (isfinite(newest)),
    doubted_since timestamptz CHECK (isfinite(doubted_since)),
    back_off_set timestamptz CHECK (isfinite(back_off_set)),
    back_off_until timestamptz CHECK (isfinite(back_off_until)),
    -- `<tenant>/<call>`.
    probe_call text,
    probe_since timestamptz CHECK (isfinite(probe_since))
) WITH (fillfactor = 50);

ALTER TABLE tenant ADD COLUMN bucket text REFERENCES bucket (name);

-- The three tables below name buckets and tenants without a foreign key: each check of one would be a query of its own in
-- every reservation.
CREATE TABLE gate_call (
    bucket text NOT NULL,
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
CREATE INDEX gate_call_by_time ON gate_call (bucket, reserved_at);

-- The tokens of each second and of each minute, of one tenant and of all as ''. Windows are added up from these.
CREATE TABLE gate_tokens (
    bucket text NOT NULL,
    tenant text NOT NULL,
    -- 1 or 60.
    seconds smallint NOT NULL,
    slot timestamptz NOT NULL,
    tokens bigint NOT NULL,
    PRIMARY KEY (bucket, tenant, seconds, slot)
);

CREATE TABLE gate_tenant (
    bucket text NOT NULL,
    tenant text NOT NULL,
    last_number bigint NOT NULL DEFAULT 0,
    -- Its calls and 429s so far, which it remembers; see find_loss. Never lowered.
    entries bigint NOT NULL DEFAULT 0,
    -- When a window itself refused it last.
    refused_at timestamptz,
    PRIMARY KEY (bucket, tenant)
);

GRANT SELECT, UPDATE (lock) ON bucket TO steward_tenant;
GRANT SELECT, UPDATE ON bucket_state TO steward_tenant;
GRANT SELECT, INSERT, UPDATE, DELETE ON gate_call, gate_tokens, gate_tenant TO steward_tenant;
GRANT SELECT, INSERT, UPDATE ON bucket, bucket_state TO steward_operator;
GRANT SELECT, INSERT, UPDATE, DELETE ON gate_call, gate_tokens, gate_tenant TO steward_operator;

ALTER TABLE bucket ENABLE ROW LEVEL SECURITY;
ALTER TABLE bucket_state ENABLE ROW LEVEL SECURITY;
ALTER TABLE gate_call ENABLE ROW LEVEL SECURITY;
ALTER TABLE gate_tokens ENABLE ROW LEVEL SECURITY;
ALTER TABLE gate_tenant ENABLE ROW LEVEL SECURITY;
-- Each policy looks the tenant's bucket up in a SELECT of its own: that runs once for a statement. A function would cost
-- ten times as much.
CREATE POLICY of_tenant ON bucket TO steward_tenant USING (name = (SELECT bucket FROM tenant WHERE id = connected_tenant()));
CREATE POLICY of_tenant ON bucket_state TO steward_tenant
    USING (bucket = (SELECT bucket FROM tenant WHERE id = connected_tenant()));
CREATE POLICY of_tenant ON gate_call TO steward_tenant
    USING (bucket = (SELECT bucket FROM tenant WHERE id = connected_tenant()));
CREATE POLICY of_tenant ON gate_tokens TO steward_tenant
    USING (bucket = (SELECT bucket FROM tenant WHERE id = connected_tenant()));
CREATE POLICY of_tenant ON gate_tenant TO steward_tenant
    USING (bucket = (SELECT bucket FROM tenant WHERE id = connected_tenant()));
CREATE POLICY of_operator ON bucket TO steward_operator USING (true) WITH CHECK (true);
CREATE POLICY of_operator ON bucket_state TO steward_operator USING (true) WITH CHECK (true);
CREATE POLICY of_operator ON gate_call TO steward_operator USING (true) WITH CHECK (true);
CREATE POLICY of_operator ON gate_tokens TO steward_operator USING (true) WITH CHECK (true);
CREATE POLICY of_operator ON gate_tenant TO steward_operator USING (true) WITH CHECK (true);
