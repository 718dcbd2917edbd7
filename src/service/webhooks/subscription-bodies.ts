import { z } from 'zod';
import { DATA_TYPE_ALIASES, DATA_TYPES, dataTypeOf, OPERATIONS } from '../../../schema/webhook.ts';
import { type Issue, Problem } from '../problem.ts';

const dataTypes = [...DATA_TYPES, ...DATA_TYPE_ALIASES];
const isDataType = (name: string): boolean => DATA_TYPES.includes(dataTypeOf(name));

const callbackUrl = z.string().min(1).meta({ description: 'Receives verification and events', format: 'uri' });
const verificationToken = z
  .string()
  .min(1)
  .max(1024)
  .refine(token => token.isWellFormed(), 'Input should be text that can be encoded')
  .meta({ description: 'Comes back in the verification, so that the callback knows that it is meant' });
const eventType = z.enum(OPERATIONS).meta({ description: 'What must happen to a document' });
const dataType = z
  .string()
  .refine(isDataType, `Input should be one of ${dataTypes.join(', ')}`)
  .meta({ description: 'The kind of data', enum: [...dataTypes] });

/** The body of POST (4.4). */
export const newSubscription = z.object({
  callback_url: callbackUrl,
  verification_token: verificationToken,
  event_type: eventType,
  data_type: dataType,
});

/** The body of PUT (4.4): null and absent leave a value as it is. */
export const subscriptionUpdate = z.object({
  verification_token: verificationToken,
  event_type: eventType.nullish(),
  data_type: dataType.nullish(),
  callback_url: callbackUrl.nullish(),
});

/** Reads a body of JSON. Throws 415 when it is something else, 422 with everything that is wrong. */
export function parseBody<Body>(shape: z.ZodType<Body>, contentType: string | undefined, text: unknown): Body {
  if (!/^application\/json *(;|$)/i.test(contentType ?? ''))
    throw new Problem(415, 'The body should be JSON: send the header Content-Type: application/json.');
  let body: unknown;
  try {
    body = JSON.parse(typeof text === 'string' ? text : '');
  } catch {
    throw new Problem(422, [{ loc: ['body'], msg: 'Input should be JSON', type: 'json_invalid' }]);
  }
  const parsed = shape.safeParse(body, { reportInput: true });
  if (parsed.success) return parsed.data;
  throw new Problem(422, parsed.error.issues.map(describeIssue));
}

function describeIssue({ code, path, input, message }: z.core.$ZodIssue): Issue {
  const loc = ['body', ...path.map(String)];
  if (input === undefined) return { loc, msg: 'Field required', type: 'missing' };
  return { loc, msg: message, type: code, ...(loc.includes('verification_token') ? {} : { input }) };
}
