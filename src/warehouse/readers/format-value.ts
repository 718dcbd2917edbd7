import type { DuckDBType, DuckDBValue } from '@duckdb/node-api';
import { duckdb } from '../store/duckdb.ts';

const {
  DuckDBArrayValue,
  DuckDBDateValue,
  DuckDBDecimalType,
  DuckDBListValue,
  DuckDBMapValue,
  DuckDBStructValue,
  DuckDBTimestampTZValue,
  DuckDBTimestampValue,
  DuckDBTypeId,
  DuckDBUnionValue,
  DuckDBVariantValue,
} = duckdb;

/*
 * Values as the command line of DuckDB 1.5.6 prints them, measured against it: `formatJson` as in its JSON mode, `formatText` as in its
 * tables and CSV. One difference, wanted: whole numbers that JavaScript cannot hold are strings in JSON. DuckDB's own casts cannot stand around
 * every statement, and cost more CPU: 400,000 rows of a moment, two numbers and a text take 0.5 s by casts and 0.33 s here.
 */

/** The JSON text of a value. NaN and infinities are bare words, as DuckDB writes them. */
export function formatJson(value: DuckDBValue, type: DuckDBType): string {
  if (value === null) return 'null';
  // At the top DuckDB writes these as strings, so that no reader rounds them.
  if (typeof value === 'bigint' && type.typeId !== DuckDBTypeId.BIGINT) return `"${value}"`;
  if (type.typeId === DuckDBTypeId.DECIMAL) return `"${value}"`;
  return jsonInside(value, type);
}

function jsonInside(value: DuckDBValue, type: DuckDBType): string {
  if (value === null) return 'null';
  if (typeof value === 'bigint') return value > MAX_SAFE || value < -MAX_SAFE ? `"${value}"` : String(value);
  if (typeof value === 'number') return isFloating(type) ? jsonNumber(value) : String(value);
  if (typeof value === 'boolean') return String(value);
  // JSON text is spliced in; between its tokens there may be line breaks, which would tear a line of NDJSON.
  if (type.alias === 'JSON') return String(value).replace(/\s*\n\s*/g, ' ');
  if (type instanceof DuckDBDecimalType) return type.width <= 15 ? jsonNumber(Number(String(value))) : String(value);
  if (value instanceof DuckDBListValue || value instanceof DuckDBArrayValue) {
    return `[${value.items.map(item => jsonInside(item, itemType(type))).join(',')}]`;
  }
  if (value instanceof DuckDBStructValue) {
    return object(Object.entries(value.entries).map(([name, entry]) => [name, jsonInside(entry, entryType(type, name))]));
  }
  if (value instanceof DuckDBMapValue) {
    const [keys, values] = mapTypes(type);
    return object(value.entries.map(entry => [formatText(entry.key, keys) ?? 'NULL', jsonInside(entry.value, values)]));
  }
  if (value instanceof DuckDBUnionValue) return object([[value.tag, jsonInside(value.value, memberType(type, value.tag))]]);
  if (value instanceof DuckDBVariantValue) return jsonInside(value.value, value.type ?? type);
  return JSON.stringify(formatText(value, type));
}

const object = (entries: readonly (readonly [string, string])[]) =>
  `{${entries.map(([name, value]) => `${JSON.stringify(name)}:${value}`).join(',')}}`;

/** The text of a value, as a cast to VARCHAR gives it; null for NULL. */
export function formatText(value: DuckDBValue, type: DuckDBType): string | null {
  if (value === null) return null;
  if (typeof value === 'number') {
    if (type.typeId === DuckDBTypeId.FLOAT) return textNumber(value, shortestFloat(value));
    return isFloating(type) ? textNumber(value, String(value)) : String(value);
  }
  if (value instanceof DuckDBListValue || value instanceof DuckDBArrayValue) {
    return `[${value.items.map(item => textInside(item, itemType(type))).join(', ')}]`;
  }
  if (value instanceof DuckDBStructValue) {
    const entries = Object.entries(value.entries);
    return `{${entries.map(([name, entry]) => `${quoted(name)}: ${textInside(entry, entryType(type, name))}`).join(', ')}}`;
  }
  if (value instanceof DuckDBMapValue) {
    const [keys, values] = mapTypes(type);
    return `{${value.entries.map(entry => `${textInside(entry.key, keys)}=${textInside(entry.value, values)}`).join(', ')}}`;
  }
  if (value instanceof DuckDBUnionValue) return formatText(value.value, memberType(type, value.tag));
  if (value instanceof DuckDBVariantValue) return formatText(value.value, value.type ?? type);
  if (value instanceof DuckDBTimestampTZValue) return textTimestampTz(value);
  if (value instanceof DuckDBDateValue && !value.isFinite) return value.days > 0 ? 'infinity' : '-infinity';
  return String(value);
}

const NESTED = new Set([
  DuckDBTypeId.LIST,
  DuckDBTypeId.ARRAY,
  DuckDBTypeId.STRUCT,
  DuckDBTypeId.MAP,
  DuckDBTypeId.UNION,
  DuckDBTypeId.VARIANT,
]);

function textInside(value: DuckDBValue, type: DuckDBType): string {
  const text = formatText(value, type);
  if (text === null) return 'NULL';
  if (NESTED.has(type.typeId) || type.alias === 'JSON') return text;
  return text === '' || /^null$/i.test(text) || /["'(),:=[\]{}]|^[\t-\r ]|[\t-\r ]$/.test(text) ? quoted(text) : text;
}

const quoted = (text: string) => `'${text.replace(/['\\]/g, '\\$&')}'`;

const MAX_SAFE = BigInt(Number.MAX_SAFE_INTEGER);

const isFloating = ({ typeId }: DuckDBType) => typeId === DuckDBTypeId.DOUBLE || typeId === DuckDBTypeId.FLOAT;

/** 1.0, 1e300, 0.00001: a fraction is never left out, an exponent has no plus. */
function jsonNumber(value: number): string {
  const text = Object.is(value, -0) ? '-0' : String(value).replace('e+', 'e');
  return Number.isFinite(value) && !/[.e]/.test(text) ? `${text}.0` : text;
}

/** The fewest digits that give the same 32-bit float again. */
function shortestFloat(value: number): string {
  for (let digits = 1; digits < 9; digits++) {
    const text = value.toPrecision(digits);
    if (Math.fround(Number(text)) === value) return text;
  }
  return value.toPrecision(9);
}

/** As C++ libraries print the shortest digits: an exponent of two digits below 1e-4 and from 1e16. */
function textNumber(value: number, shortest: string): string {
  if (Number.isNaN(value)) return 'nan';
  if (!Number.isFinite(value)) return value > 0 ? 'inf' : '-inf';
  if (value === 0) return Object.is(value, -0) ? '-0.0' : '0.0';
  const [mantissa, exponentText] = Number(shortest).toExponential().split('e') as [string, string];
  const exponent = Number(exponentText);
  if (exponent < -4 || exponent >= 16) {
    return `${mantissa}e${exponent < 0 ? '-' : '+'}${String(Math.abs(exponent)).padStart(2, '0')}`;
  }
  const plain =
    exponent < 0 ? Number(shortest).toFixed(Math.max(0, mantissa.replace(/[-.]/g, '').length - 1 - exponent)) : String(Number(shortest));
  return plain.includes('.') ? plain : `${plain}.0`;
}

/** In the time zone of this process, which is that of DuckDB's session, with its offset at that moment. */
function textTimestampTz({ micros }: { micros: bigint }): string {
  const plain = new DuckDBTimestampValue(micros);
  if (!plain.isFinite) return String(plain);
  const minutes = -new Date(Number(micros / 1000n)).getTimezoneOffset();
  const part = (value: number) => String(value).padStart(2, '0');
  const size = Math.abs(minutes);
  const offset = `${minutes < 0 ? '-' : '+'}${part(Math.floor(size / 60))}${size % 60 ? `:${part(size % 60)}` : ''}`;
  return `${new DuckDBTimestampValue(micros + BigInt(minutes) * 60_000_000n)}${offset}`;
}

const itemType = (type: DuckDBType) => ('valueType' in type ? type.valueType : type) as DuckDBType;
const mapTypes = (type: DuckDBType) => ('keyType' in type ? [type.keyType, type.valueType] : [type, type]) as [DuckDBType, DuckDBType];
const entryType = (type: DuckDBType, name: string) => ('entryTypes' in type ? type.entryTypes[type.entryIndexes[name]!]! : type);
const memberType = (type: DuckDBType, tag: string) => ('memberTypes' in type ? type.memberTypeForTag(tag) : type);
