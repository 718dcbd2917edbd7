import { z } from 'zod';

/** What happened to a document (2.15). */
export const OPERATIONS = ['create', 'update', 'delete'] as const;
export type Operation = (typeof OPERATIONS)[number];

/**
 * The kinds of data that a subscription may name: those that are publicly known of live services. Some are of documents that we do not
 * hold; those never fire. Heart rate has none: it must be polled.
 */
export const DATA_TYPES = [
  'tag',
  'enhanced_tag',
  'workout',
  'session',
  'sleep',
  'daily_sleep',
  'daily_readiness',
  'daily_activity',
  'daily_spo2',
  'sleep_time',
  'rest_mode_period',
  'ring_configuration',
  'daily_stress',
  'daily_cardiovascular_age',
  'daily_resilience',
  'vo2_max',
  'meal',
] as const;

/** The specification's example (2.15) says `activity` where live services say `daily_activity`: both are taken. */
const ALIASES: ReadonlyMap<string, string> = new Map([['activity', 'daily_activity']]);

/** The one name of a kind of data. */
export const dataTypeOf = (name: string): string => ALIASES.get(name) ?? name;

/** All names of a kind of data, the usual one first. */
export const namesOf = (dataType: string): string[] => [
  dataType,
  ...[...ALIASES].flatMap(([name, meant]) => (meant === dataType ? [name] : [])),
];

/** The body of an event (2.17). Keys beyond these five are ignored. */
export const webhookEvent = z.object({
  event_type: z.enum(OPERATIONS),
  // The kinds of data that are known are words of this form; it is shown in terminals.
  data_type: z.string().regex(/^[A-Za-z0-9_]{1,64}$/),
  object_id: z.string().min(1).max(1024),
  event_time: z.string().min(1).max(64),
  user_id: z.string().min(1).max(1024),
});
export type WebhookEvent = z.infer<typeof webhookEvent>;

/** A subscription as it travels (2.15). */
export const webhookSubscription = z.object({
  id: z.uuidv4().meta({ description: 'Identifier' }),
  callback_url: z.string().min(1).meta({ description: 'Receives verification and events' }),
  event_type: z.enum(OPERATIONS).meta({ description: 'What must happen to a document' }),
  data_type: z.string().min(1).meta({ description: 'The kind of data' }),
  expiration_time: z.iso.datetime({ offset: true }).meta({ description: 'When it ends unless it is renewed' }),
});
export type WebhookSubscription = z.infer<typeof webhookSubscription>;
