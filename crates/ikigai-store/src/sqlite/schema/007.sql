-- Chinese and Japanese characters are words by themselves: the index is made again, behind the log as
-- ever.
INSERT INTO search (search) VALUES ('delete-all');
UPDATE search_upto SET message = 0;
