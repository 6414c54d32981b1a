-- How far the audit chain of each vault has come. A copy that lacks records of it was set back.

UPDATE fleet SET version = 5;

ALTER TABLE owner ADD COLUMN chain_records bigint NOT NULL DEFAULT 0;
ALTER TABLE owner ADD COLUMN chain_sha256 text NOT NULL DEFAULT repeat('0', 64);

-- What the process reports about its work, for people who look after many.
ALTER TABLE owner ADD COLUMN since timestamptz NOT NULL DEFAULT clock_timestamp();
ALTER TABLE owner ADD COLUMN last_check timestamptz;
ALTER TABLE owner ADD COLUMN matters_late bigint NOT NULL DEFAULT 0;
ALTER TABLE owner ADD COLUMN signals_fresh bigint NOT NULL DEFAULT 0;

-- The copies that a person shut out by letting another one act.
ALTER TABLE owner ADD COLUMN shut_out text[] NOT NULL DEFAULT '{}';
