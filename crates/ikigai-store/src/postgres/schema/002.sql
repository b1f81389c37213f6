-- What is found by words: derived from the log, which it follows. It keeps no text of its own. A row
-- has the id of its message. `words` has the words of the text, and, behind a colon so that no word
-- is taken for one, `:a` with the agent's id, `:s` with the session's, `:k` with the kind, `:m` with
-- each word of the model's name, and `:long` if the text has more words than places can be told of.
CREATE TABLE search (
    message bigint PRIMARY KEY,
    agent bigint NOT NULL,
    seq bigint NOT NULL,
    created_at bigint NOT NULL,
    words tsvector NOT NULL
);
-- Without a list of pending entries, which every search would have to walk through.
CREATE INDEX search_words ON search USING gin (words) WITH (fastupdate = off);

-- Up to which row of each agent the index goes. Not by the id of messages: whoever draws a number
-- first may commit last.
CREATE TABLE search_upto (
    agent bigint PRIMARY KEY REFERENCES agents (id),
    seq bigint NOT NULL
);
