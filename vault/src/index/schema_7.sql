-- What the router has to do with at all: what nobody has acted upon, and what a human has told apart since it
-- was found ambiguous.
CREATE VIEW signals_to_route AS SELECT path, source FROM signals
    WHERE status = 'unrouted' OR (status = 'skipped' AND target IS NOT NULL AND reason LIKE 'ambiguous%');
-- Every such signal has its place on the router's list, so that what waits for later costs nothing.
INSERT OR IGNORE INTO routes (signal, acts, at, retry_at, met_at) SELECT path, 0, NULL, 0, 0 FROM signals_to_route;
UPDATE routes SET acts = 1, retry_at = 9223372036854775807 WHERE signal NOT IN (SELECT path FROM signals_to_route);
CREATE INDEX routes_by_turn ON routes (retry_at);
CREATE INDEX routes_of_shadow ON routes (signal) WHERE acts = 0;

PRAGMA user_version = 7;
