/** The parts of the OpenAPI document that do not derive from a resource. */

type Json = Record<string, unknown>;

const dateOrMoment = {
  anyOf: [
    { type: 'string', format: 'date' },
    { type: 'string', format: 'date-time' },
  ],
};

const query = (name: string, description: string, schema: Json, example?: string): Json => ({
  name,
  in: 'query',
  required: false,
  description,
  schema,
  ...(example ? { example } : {}),
});

/** Every parameter, by its name (4.1 to 4.3). */
export const parameters: Record<string, Json> = {
  document_id: { name: 'document_id', in: 'path', required: true, description: 'Identifier of the document.', schema: { type: 'string' } },
  start_date: query(
    'start_date',
    'First day; the day before the end when omitted. A date-time is compared with the moment at which a document begins. A + must be sent as %2B.',
    dateOrMoment,
    '2025-03-01',
  ),
  end_date: query(
    'end_date',
    'Last day; today (UTC) when omitted. A date-time is compared with the moment at which a document begins, and counted in. A + must be sent as %2B.',
    dateOrMoment,
    '2025-03-08',
  ),
  start_datetime: query(
    'start_datetime',
    'Start of the range, counted in; a day before the end when omitted. A date is its midnight in UTC. A + must be sent as %2B.',
    dateOrMoment,
    '2025-03-01T00:00:00+01:00',
  ),
  end_datetime: query(
    'end_datetime',
    'End of the range, left out; now when omitted. At most 30 days after the start. A + must be sent as %2B.',
    dateOrMoment,
    '2025-03-02T00:00:00+01:00',
  ),
  latest: query('latest', 'Whether the newest item of the range alone is wanted; of the last 30 days where no start is given.', {
    type: 'boolean',
  }),
  next_token: query('next_token', 'Value of the same name in the answer before, alone or with the same other parameters.', {
    type: 'string',
  }),
  fields: query(
    'fields',
    'Comma-separated names of the fields to include beside those that always come; all when omitted.',
    {
      type: 'string',
    },
    'day,score,bpm',
  ),
};

/** The bodies of errors. */
export const errorSchemas: Record<string, Json> = {
  Problem: { type: 'object', properties: { detail: { type: 'string' } }, required: ['detail'] },
  HTTPValidationError: {
    type: 'object',
    properties: { detail: { type: 'array', items: { $ref: '#/components/schemas/ValidationError' } } },
    required: ['detail'],
  },
  ValidationError: {
    type: 'object',
    properties: {
      loc: { type: 'array', items: { type: ['string', 'integer'] } },
      msg: { type: 'string' },
      type: { type: 'string' },
      input: {},
      ctx: { type: 'object' },
    },
    required: ['loc', 'msg', 'type'],
  },
};

const failure = (description: string, headers?: Json, schema = 'Problem'): Json => ({
  description,
  ...(headers ? { headers } : {}),
  content: { 'application/json': { schema: { $ref: `#/components/schemas/${schema}` } } },
});

const header = (description: string, type: 'integer' | 'string'): Json => ({ description, schema: { type } });

/** The answers that are errors, by status (section 7). */
export const errorResponses: Record<string, Json> = {
  400: failure('Client exception: a reversed or too long range, a next_token that does not fit.'),
  401: failure('Unauthorized: the access token is missing, malformed, unknown, expired or revoked.', {
    'WWW-Authenticate': header('Bearer, and what is wrong with a token that was sent.', 'string'),
  }),
  403: failure('Forbidden: the subscription of the user has expired and data is unavailable, or the user has not granted the scope.'),
  404: failure('Not found: the user has no such document.'),
  413: failure('Content too large: no route of these takes a body.'),
  422: failure('Validation error.', undefined, 'HTTPValidationError'),
  429: failure('Rate limit exceeded.', {
    'Retry-After': header('Whole seconds until requests are taken again.', 'integer'),
    'X-RateLimit-Limit': header('Requests in a window.', 'integer'),
    'X-RateLimit-Window': header('Length of the window in seconds.', 'integer'),
    'X-RateLimit-Reset': header('End of the window, seconds since the epoch.', 'integer'),
    'X-RateLimit-Tier': header('Which limit was exceeded: token, application or address.', 'string'),
  }),
  431: failure('Header fields too large: request line and headers hold more than 16 kB.'),
  500: failure('Internal error.'),
  503: failure('Service unavailable: the answer took too long.'),
};
