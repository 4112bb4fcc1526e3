-- One partition's whole state. Every row of it changes in the transaction that moves `next_offset`.
create table if not exists progress (
    one integer primary key check (one = 1),
    topic text not null,
    topic_id text not null,
    partitions integer not null,
    partition integer not null,
    epoch integer not null,             -- who opened last owns the partition
    first_offset integer not null,
    next_offset integer not null,
    clock_ms integer not null,
    consumed integer not null default 0,
    applied integer not null default 0,
    duplicate integer not null default 0,
    dead_lettered integer not null default 0,
    late integer not null default 0,
    holes integer not null default 0,
    unjoined integer not null default 0,
    republished integer not null default 0  -- dead letters before this offset have been told to their topic
);
create table if not exists evidence (
    day integer not null,
    domain text not null,
    model text not null,
    agent text not null,
    intent text not null,
    parameter text not null,
    bin text not null,
    micro integer not null,
    primary key (day, domain, model, agent, intent, parameter, bin)
) without rowid;
create table if not exists usage (
    day integer not null,
    content_hash text not null,
    bin text not null,
    micro integer not null,
    primary key (day, content_hash, bin)
) without rowid;
-- Offsets are unique and grow, so what is oldest is what lies first: purging reads only what it deletes.
create table if not exists seen (
    offset integer primary key,
    event blob not null,                -- found by an index in memory: see seen.py
    at_ms integer not null
);
create table if not exists shown (
    offset integer primary key,
    query blob not null unique,
    at_ms integer not null,
    impression blob not null,
    chosen text not null
);
create table if not exists waiting (
    offset integer primary key,
    query blob not null,
    at_ms integer not null,
    feedback blob not null
);
create index if not exists waiting_query on waiting (query);
create table if not exists sessions (
    offset integer primary key,
    session text not null unique,
    principal text not null,
    phase text not null,
    at_ms integer not null
);
create table if not exists dead_letters (
    offset integer primary key,
    timestamp integer not null,
    reason text not null,
    detail text not null,
    size integer not null,
    sha256 text not null,
    original blob not null
);
create table if not exists dead_letter_reasons (
    reason text primary key,
    count integer not null
) without rowid;
