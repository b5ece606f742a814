-- Where clients reach the server that leads, for those that stand by and pass connections on.

ALTER TABLE lead ADD COLUMN url text;
