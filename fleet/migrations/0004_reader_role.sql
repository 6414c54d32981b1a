-- What watches a fleet reads these tables and can change none. The log of what operators did is not among them.

UPDATE fleet SET version = 4;

GRANT SELECT ON fleet, tenant, owner, stop, bucket, bucket_state, gate_call, gate_tokens, gate_tenant TO steward_reader;

CREATE POLICY of_reader ON tenant FOR SELECT TO steward_reader USING (true);
CREATE POLICY of_reader ON owner FOR SELECT TO steward_reader USING (true);
CREATE POLICY of_reader ON stop FOR SELECT TO steward_reader USING (true);
CREATE POLICY of_reader ON bucket FOR SELECT TO steward_reader USING (true);
CREATE POLICY of_reader ON bucket_state FOR SELECT TO steward_reader USING (true);
CREATE POLICY of_reader ON gate_call FOR SELECT TO steward_reader USING (true);
CREATE POLICY of_reader ON gate_tokens FOR SELECT TO steward_reader USING (true);
CREATE POLICY of_reader ON gate_tenant FOR SELECT TO steward_reader USING (true);
