import { expect, test } from 'vitest';
import { findTimestampMs, isSignedBy, sign, signatureHeaders } from '../../src/base/signature.ts';

const SECRET = 'a-client-secret';
const TIMESTAMP = '1748736000';
const BODY =
  '{"event_type":"update","data_type":"sleep","object_id":"8f9a5221-639e-4a85-81cb-4065ef23f979","event_time":"2025-05-31T23:59:30+00:00","user_id":"c6b1c8a4"}';
// printf '%s%s' "$TIMESTAMP" "$BODY" | openssl dgst -sha256 -hmac "$SECRET"
const SIGNATURE = 'E3DDACB1BB0B255E0286A564B18FB1A1185FFBCC94F1C3FCBEC857B450299FD2';
const OLD_SECRETS_SIGNATURE = 'F641D5406FECF19025D724AAD82259EF4EEFD444522B080961DBCD8F5013D9A3';

const bytes = Buffer.from(BODY);

test('the signature is what openssl computes, in upper-case hex', () => {
  expect(sign(SECRET, TIMESTAMP, BODY)).toBe(SIGNATURE);
  expect(sign(SECRET, TIMESTAMP, bytes)).toBe(SIGNATURE);
  // printf '%s%s' '2025-06-01T02:00:00+02:00' '{}' | openssl dgst -sha256 -hmac 'Schlüssel'
  expect(sign('Schlüssel', '2025-06-01T02:00:00+02:00', '{}')).toBe('449019F94701261DE0BE0E00C3056EE87BEC960E09AD8DC9CEB878D259D4BBB2');
});

test('either case of hex is the same signature', () => {
  expect(isSignedBy([SECRET], TIMESTAMP, bytes, SIGNATURE)).toBe(true);
  expect(isSignedBy([SECRET], TIMESTAMP, bytes, SIGNATURE.toLowerCase())).toBe(true);
});

test('while the secret is being replaced both count, afterwards the new one alone', () => {
  expect(isSignedBy([SECRET, 'the-old-secret'], TIMESTAMP, bytes, OLD_SECRETS_SIGNATURE)).toBe(true);
  expect(isSignedBy([SECRET, 'the-old-secret'], TIMESTAMP, bytes, SIGNATURE)).toBe(true);
  expect(isSignedBy([SECRET], TIMESTAMP, bytes, OLD_SECRETS_SIGNATURE)).toBe(false);
  expect(isSignedBy([], TIMESTAMP, bytes, SIGNATURE)).toBe(false);
});

test.each([
  ['nothing', ''],
  ['one digit less', SIGNATURE.slice(1)],
  ['one digit more', `${SIGNATURE}0`],
  ['a blank before it', ` ${SIGNATURE}`],
  ['a line feed after it', `${SIGNATURE}\n`],
  ['a letter that is no hex', `G${SIGNATURE.slice(1)}`],
  ['its bytes as base64', Buffer.from(SIGNATURE, 'hex').toString('base64')],
  ['twice itself', `${SIGNATURE}, ${SIGNATURE}`],
  ['the name of the algorithm before it', `sha256=${SIGNATURE}`],
  ['zeros', '0'.repeat(64)],
])('%s is no signature', (_, given) => {
  expect(isSignedBy([SECRET], TIMESTAMP, bytes, given)).toBe(false);
});

test.each([
  ['1748736000', 1_748_736_000_000],
  ['1748736000123', 1_748_736_000_123],
  ['2025-06-01T00:00:00Z', 1_748_736_000_000],
  ['2025-06-01T00:00:00.123+00:00', 1_748_736_000_123],
  ['2025-06-01T02:00:00+02:00', 1_748_736_000_000],
  ['2025-05-31T19:30:00.999999-04:30', 1_748_736_000_999],
])('the timestamp %s is %i', (text, ms) => {
  expect(findTimestampMs(text)).toBe(ms);
});

test.each([
  '',
  '0',
  '-1748736000',
  '+1748736000',
  '1748736000.0',
  '1.748736e9',
  '0x683b9900',
  '01748736000',
  '174873600',
  '17487360000',
  '174873600012',
  '17487360001234',
  ' 1748736000',
  '1748736000 ',
  '1748736000\n',
  '1748736000, 1748736000',
  '١٧٤٨٧٣٦٠٠٠',
  '2025-06-01',
  '2025-06-01T00:00:00',
  '2025-06-01 00:00:00Z',
  '2025-02-30T00:00:00Z',
  '2025-06-01T24:00:00Z',
  '2025-06-01T00:00:00+0200',
  '2025-06-01T00:00:00z',
  '2025-06-01T00:00:00Z\n',
  '2025-06-01T00:00:00Z{',
  'Sun, 01 Jun 2025 00:00:00 GMT',
  'now',
])('%j is no timestamp', text => {
  expect(findTimestampMs(text)).toBeUndefined();
});

test('the names of the two headers follow the prefix, in lower case', () => {
  expect(signatureHeaders('x-service-')).toEqual({ timestamp: 'x-service-timestamp', signature: 'x-service-signature' });
  expect(signatureHeaders('X-Ring-')).toEqual({ timestamp: 'x-ring-timestamp', signature: 'x-ring-signature' });
});
