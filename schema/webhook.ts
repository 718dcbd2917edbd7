import { z } from 'zod';
import { resources } from './index.ts';
import { dataTypesOf } from './resource.ts';

/** What happened to a document (2.15). */
export const OPERATIONS = ['create', 'update', 'delete'] as const;
export type Operation = (typeof OPERATIONS)[number];

/** Kinds of data publicly known of live services whose documents we do not hold: they may be subscribed to, and never fire. */
const NOT_HELD = ['tag', 'meal'];

/** The kinds of data that a subscription may name. Heart rate and what has no data type must be polled. */
export const DATA_TYPES: readonly string[] = [...new Set([...dataTypesOf(resources), ...NOT_HELD])];

const aliases = resources.flatMap(({ dataType, dataTypeAlias }) => (dataType && dataTypeAlias ? [[dataTypeAlias, dataType] as const] : []));
const byAlias: ReadonlyMap<string, string> = new Map(aliases);

/** The other names that some kinds of data may have. */
export const DATA_TYPE_ALIASES: readonly string[] = [...byAlias.keys()];

/** The one name of a kind of data. */
export const dataTypeOf = (name: string): string => byAlias.get(name) ?? name;

/** All names of a kind of data, the usual one first. */
export const namesOf = (dataType: string): string[] => [
  dataType,
  ...aliases.flatMap(([name, meant]) => (meant === dataType ? [name] : [])),
];

/** The body of an event (2.17). Keys beyond these five are ignored. */
export const webhookEvent = z.object({
  event_type: z.enum(OPERATIONS).meta({ description: 'What happened to the document' }),
  // The kinds of data that are known are words of this form; it is shown in terminals.
  data_type: z
    .string()
    .regex(/^[A-Za-z0-9_]{1,64}$/)
    .meta({ description: 'The kind of data' }),
  object_id: z.string().min(1).max(1024).meta({ description: 'Identifier of the document that changed' }),
  event_time: z.string().min(1).max(64).meta({ description: 'When it happened: ISO 8601, with offset' }),
  user_id: z.string().min(1).max(1024).meta({ description: 'The service’s own identifier of the user' }),
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
