-- Whether a confirmation let something else happen than was proposed. Records of before have no such answers.
ALTER TABLE actions ADD COLUMN edited INTEGER NOT NULL DEFAULT 0;

PRAGMA user_version = 14;
