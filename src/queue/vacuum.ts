/** BullMQ's tables that change all the time. */
export const tables = ['job', 'event', 'meta', 'dedup', 'dedup_next', 'scheduler'];

/**
 * What PostgreSQL does not do by itself in a session without a server around it: its write-ahead log would grow until the end of the
 * process (measured: 9 MB for each 20,000 changed rows), and each claim of a job would step over all the dead ones.
 */
export const vacuum = [...tables.map(table => `VACUUM ${table}`), 'CHECKPOINT'];
