/** What a person may grant to a client, in the words of the wire. */
export const scopes = ['email', 'personal', 'daily', 'heartrate', 'workout', 'tag', 'session', 'spo2Daily'] as const;
export type Scope = (typeof scopes)[number];

/** What each lets a client read, for the person who grants it. */
export const scopeMeanings: Readonly<Record<Scope, string>> = {
  email: 'E-mail address',
  personal: 'Personal facts (age, sex, height, weight) and rings',
  daily: 'Sleep, activity, readiness, stress and the other values of a day',
  heartrate: 'Heart rate around the clock',
  workout: 'Workouts',
  tag: 'Tags and notes',
  session: 'Guided and tracked moments',
  spo2Daily: 'Oxygen saturation during sleep',
};

export const isScope = (word: string): word is Scope => scopes.some(scope => scope === word);
