-- How far the audit chain of each vault has come. A copy that lacks records of it was set back.

UPDATE fleet SET version = 5;

ALTER TABLE owner ADD COLUMN chain_records bigint NOT NULL DEFAULT 0;
ALTER TABLE owner ADD COLUMN chain_sha256 text NOT NULL DEFAULT repeat('0', 64);
