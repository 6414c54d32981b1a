-- What operators did. A line is written by one function alone, and by nobody changed.

UPDATE fleet SET version = 3;

CREATE TABLE ops_log (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    at timestamptz NOT NULL DEFAULT clock_timestamp(),
    -- The database role, and the user whom the command names.
    role text NOT NULL,
    operator text NOT NULL,
    -- A word such as `tenant_set`, and the tenant or bucket.
    event text NOT NULL,
    subject text NOT NULL,
    before jsonb,
    after jsonb,
    reason text NOT NULL
);

CREATE FUNCTION record_event(operator text, event text, subject text, before jsonb, after jsonb, reason text)
    RETURNS void LANGUAGE sql SECURITY DEFINER
    BEGIN ATOMIC
        INSERT INTO ops_log (role, operator, event, subject, before, after, reason)
        VALUES (session_user, operator, event, subject, before, after, reason);
    END;

REVOKE ALL ON FUNCTION record_event FROM PUBLIC;
GRANT EXECUTE ON FUNCTION record_event TO steward_operator, steward_tenant;
GRANT SELECT ON ops_log TO steward_operator;
