-- Rows of kind `files`, and files that a rewind restored. An older program would take them back without the
-- files, so it must refuse the store.
CREATE INDEX messages_files ON messages (agent, seq) WHERE kind = 'files';
