-- What the process of a vault reports about its work, and the copies that a person shut out.

UPDATE fleet SET version = 6;

ALTER TABLE owner ADD COLUMN since timestamptz NOT NULL DEFAULT clock_timestamp();
ALTER TABLE owner ADD COLUMN last_check timestamptz;
ALTER TABLE owner ADD COLUMN matters_late bigint NOT NULL DEFAULT 0 CHECK (matters_late >= 0);
ALTER TABLE owner ADD COLUMN signals_fresh bigint NOT NULL DEFAULT 0 CHECK (signals_fresh >= 0);
-- Ids of copies, the newest last.
ALTER TABLE owner ADD COLUMN shut_out text[] NOT NULL DEFAULT '{}';

-- A tenant's role writes its own row. A value that nobody can read would hide all tenants from operators.
ALTER TABLE owner
    ADD CHECK (mode IN ('shadow', 'live_high_confidence_only', 'live')),
    ADD CHECK (isfinite(seen) AND isfinite(since) AND isfinite(last_check)),
    ADD CHECK (chain_records >= 0 AND chain_sha256 ~ '^[0-9a-f]{64}$');
