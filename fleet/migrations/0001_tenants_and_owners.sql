-- What the machines of a fleet must agree on: who exists, who serves which vault, and whether all must stop. Nothing here
-- names a note, a person of a vault, or a key.

CREATE TABLE fleet (
    -- Always one row.
    one boolean PRIMARY KEY DEFAULT true CHECK (one),
    -- The version of these tables, and the oldest build that understands them.
    version integer NOT NULL,
    min_reader integer NOT NULL,
    created_at timestamptz NOT NULL DEFAULT clock_timestamp()
);
INSERT INTO fleet (version, min_reader) VALUES (1, 1);

CREATE TABLE tenant (
    id text PRIMARY KEY CHECK (id ~ '^[a-z][a-z0-9-]{0,30}$'),
    -- The id of its vault; null until its first start.
    vault_id text,
    -- The most that its processes may do, and what they are expected to be set to.
    mode_ceiling text NOT NULL DEFAULT 'shadow' CHECK (mode_ceiling IN ('shadow', 'live_high_confidence_only', 'live')),
    expected_mode text NOT NULL DEFAULT 'shadow' CHECK (expected_mode IN ('shadow', 'live_high_confidence_only', 'live')),
    -- A dropped tenant stays, so that its id is never used again.
    state text NOT NULL DEFAULT 'active' CHECK (state IN ('active', 'dropped')),
    created_at timestamptz NOT NULL DEFAULT clock_timestamp()
);

-- The copy of a vault that may act: one row for each tenant that was ever started.
CREATE TABLE owner (
    tenant text PRIMARY KEY REFERENCES tenant (id),
    -- The random id of the copy of the vault. A restored vault is another copy.
    copy text NOT NULL,
    -- Rises with every start and every taking over.
    epoch bigint NOT NULL CHECK (epoch > 0),
    instance text NOT NULL,
    address text NOT NULL,
    build text NOT NULL,
    mode text NOT NULL,
    policy_hash text NOT NULL,
    seen timestamptz NOT NULL
);

-- A stop of one tenant, or of the whole fleet.
CREATE TABLE stop (
    -- A tenant's id, or '*'.
    scope text PRIMARY KEY,
    stopped_by text NOT NULL,
    reason text NOT NULL DEFAULT '',
    stopped_at timestamptz NOT NULL DEFAULT clock_timestamp()
);

-- The tenant of the role that is connected: its role is `steward_tenant_<tenant>`.
CREATE FUNCTION connected_tenant() RETURNS text LANGUAGE sql STABLE
    RETURN substr(session_user::text, length('steward_tenant_') + 1);

GRANT SELECT ON fleet, stop, tenant TO steward_tenant;
GRANT UPDATE (vault_id) ON tenant TO steward_tenant;
GRANT SELECT, INSERT, UPDATE ON owner TO steward_tenant;
GRANT SELECT ON fleet, owner TO steward_operator;
GRANT SELECT, INSERT, UPDATE ON tenant TO steward_operator;
GRANT SELECT, INSERT, DELETE ON stop TO steward_operator;
GRANT SELECT, INSERT, UPDATE, DELETE ON owner TO steward_operator;

ALTER TABLE tenant ENABLE ROW LEVEL SECURITY;
ALTER TABLE owner ENABLE ROW LEVEL SECURITY;
ALTER TABLE stop ENABLE ROW LEVEL SECURITY;
CREATE POLICY of_tenant ON tenant TO steward_tenant USING (id = connected_tenant());
CREATE POLICY of_tenant ON owner TO steward_tenant
    USING (tenant = connected_tenant()) WITH CHECK (tenant = connected_tenant());
CREATE POLICY of_tenant ON stop TO steward_tenant USING (scope IN ('*', connected_tenant()));
CREATE POLICY of_operator ON tenant TO steward_operator USING (true) WITH CHECK (true);
CREATE POLICY of_operator ON owner TO steward_operator USING (true) WITH CHECK (true);
CREATE POLICY of_operator ON stop TO steward_operator USING (true) WITH CHECK (true);
