-- Where the lead was last taken, and whether every commit waited for a standby then: what is needed to tell a failover that lost its
-- tail from one that lost nothing.

ALTER TABLE lead ADD COLUMN system text, ADD COLUMN timeline text, ADD COLUMN synchronous boolean;
