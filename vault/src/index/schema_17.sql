-- The confidence from which the average of a source starts, where a human wrote one. The instincts are read anew for it.
ALTER TABLE instincts ADD COLUMN start REAL;
UPDATE files SET hash = NULL WHERE kind = 'instinct';

PRAGMA user_version = 17;
