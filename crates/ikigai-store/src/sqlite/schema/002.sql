-- An agent looks for mail at every break of its work, however much it ever got.
CREATE INDEX mail_queued ON mail (receiver, id) WHERE state = 'queued';
