-- Entities and who mentions them, symbols and who defines them, in the rounds of build.py.

-- mentioned: who mentions what in the shard, surely enough
CREATE TABLE mentioned AS
SELECT c.place AS row, m.label, m.text, m.score
FROM stored_mentions m JOIN stored_contents c USING (content_hash) WHERE m.score >= $least_mention_confidence;

-- names: how often each name is mentioned here
CREATE TABLE names AS
SELECT label, key, count(*) AS mentions, {partition} AS partition
FROM mentioned JOIN spelled USING (text) WHERE key <> '' GROUP BY label, key;

-- surrounding: the first texts that mention each name that may be short for another one, or have one for short
CREATE TABLE surrounding AS
SELECT label, key, unnest(list_slice(list_sort(list(DISTINCT row)), 1, $most_surroundings)) AS row
FROM mentioned JOIN spelled USING (text)
JOIN (SELECT label, short AS key FROM doubtful UNION SELECT label, whole FROM doubtful) USING (label, key)
GROUP BY label, key;

-- spellings: how often each entity is spelled so
CREATE VIEW spellings AS
SELECT label, root, spelling, count(*) AS times
FROM mentioned JOIN spelled USING (text) JOIN stands USING (label, key) GROUP BY ALL;

-- mentioning: who mentions each entity, and how surely
CREATE VIEW mentioning AS
SELECT row, label, root, max(score) AS score
FROM mentioned JOIN spelled USING (text) JOIN stands USING (label, key) GROUP BY ALL;

-- defining: symbols that code defines, each by the content where its definition begins
CREATE VIEW defining AS
SELECT p.row, s.name
FROM (
    SELECT unit, symbol AS name FROM places WHERE symbol IS NOT NULL
    UNION SELECT unit, name FROM defined
) s JOIN places p ON p.place = s.unit;

-- symbols: each once, wherever it stands
CREATE TABLE symbols AS
SELECT DISTINCT row, $symbol AS label, name FROM defining;

-- nodes: entities and symbols of the partition, numbered in the order of their ids
CREATE TABLE nodes AS
WITH added AS (
    SELECT label, root, spelling, sum(times)::BIGINT AS times FROM spellings GROUP BY ALL
), every AS (
    SELECT left(sha256(label || chr(10) || root), 32) AS node_id, label, root AS key,
           first(spelling ORDER BY times DESC, spelling) AS name,
           list_sort(list(spelling)) AS aliases, sum(times)::BIGINT AS mentions
    FROM added GROUP BY label, root
    UNION ALL
    SELECT left(sha256(label || chr(10) || name), 32), label, name, name, [name], count(*)
    FROM symbols GROUP BY label, name
)
SELECT row_number() OVER (ORDER BY node_id) - 1 AS node, * FROM every;

-- node_counts: how many there are
CREATE VIEW node_counts AS
SELECT {partition} AS partition, count(*) AS nodes FROM nodes;

-- named: edges to nodes, numbered over all partitions
CREATE VIEW named AS
SELECT kind, row, (node + before)::BIGINT AS node, confidence
FROM (
    SELECT 'mentions' AS kind, row, node, score AS confidence
    FROM mentioning m JOIN nodes n ON n.label = m.label AND n.key = m.root
    UNION ALL
    SELECT 'defines', row, node, 1.0 FROM symbols JOIN nodes USING (label, name)
), (SELECT coalesce(sum(nodes), 0) AS before FROM node_counts WHERE partition < {partition});

-- together: similar contents that stand in one document, whose windows overlap: it says nothing
CREATE VIEW together AS
SELECT DISTINCT n.row, n.other
FROM places a JOIN places b USING (uri) JOIN near n ON n.row = a.row AND n.other = b.row;
