-- Mail says who sent it (`user`, `agent`, `process`) and what it is about (`message`, `question`, `report`,
-- `failed`), so that nothing depends on its text. Only queued mail is read again: a report is the last
-- answer of its sender, word for word.
ALTER TABLE mail ADD COLUMN origin text COLLATE "C" NOT NULL DEFAULT 'user';
ALTER TABLE mail ADD COLUMN about text COLLATE "C" NOT NULL DEFAULT 'message';
UPDATE mail SET origin = 'agent' WHERE sender IS NOT NULL;
UPDATE mail SET about = 'failed' WHERE sender IS NOT NULL AND text LIKE 'I could not finish: %';
UPDATE mail SET about = 'report'
WHERE state = 'queued' AND about = 'message' AND EXISTS (
    SELECT 1 FROM messages m
    WHERE m.agent = mail.sender AND m.kind = 'assistant' AND m.content = mail.text
);
