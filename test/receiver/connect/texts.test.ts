import { expect, test } from 'vitest';
import { scopes } from '../../../schema/scopes.ts';
import { chooseLanguage, type languages, texts } from '../../../src/receiver/connect/texts.ts';

const FACTS = { study: 'THE-STUDY', contact: 'THE-CONTACT', host: 'the-host' };

/** All sentences of a language, by name. */
const sentencesOf = (language: (typeof languages)[number]): Record<string, string> =>
  Object.fromEntries(
    Object.entries(texts[language]).map(([name, said]) => {
      if (name === 'scope') return [name, scopes.map(texts[language].scope).join('; ')];
      const shown = typeof said === 'function' ? (said as (facts: typeof FACTS) => unknown)(FACTS) : said;
      return [name, JSON.stringify(shown)];
    }),
  );

const factsIn = (text: string) => Object.values(FACTS).filter(fact => text.includes(fact));

test('both languages say the same things, with the same facts, in other words', () => {
  const [english, german] = [sentencesOf('en'), sentencesOf('de')];
  for (const [name, text] of Object.entries(english)) {
    expect([name, factsIn(german[name] ?? '')]).toEqual([name, factsIn(text)]);
    expect([name, german[name]]).not.toEqual([name, text]);
  }
});

test.each([
  [undefined, 'en'],
  ['', 'en'],
  ['de', 'de'],
  ['de-CH', 'de'],
  ['DE-at;q=0.8', 'de'],
  ['fr, de;q=0.7, en;q=0.3', 'de'],
  ['en-GB, de;q=0.9', 'en'],
  ['de;q=0, en;q=0.1', 'en'],
  ['fr', 'en'],
  ['*', 'en'],
  [`${'x,'.repeat(100_000)}de`, 'en'],
  ['de;q=x', 'en'],
])('a browser that wants %j gets %s', (header, language) => {
  expect(chooseLanguage(header)).toBe(language);
});
