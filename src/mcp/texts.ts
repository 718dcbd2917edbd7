/** What the assistant is told before it asks anything. */
export function instructions(user: string | undefined): string {
  const whose =
    user === undefined ? 'Data of the rings of several people' : `Data of the ring of one person, whose user_id is ${JSON.stringify(user)}`;
  return `${whose}, in DuckDB, read-only: sleep, readiness, activity, heart rate, stress, workouts, tags, and which days are missing and why.
Begin with list_people and list_tables; describe_table tells the columns of a table with their units. The views nights, daily, weekly and baselines answer most
questions with less SQL than the tables.
- A night is one row of nights: the main sleep of its day, which is the day of waking. Durations are in seconds.
- Times are UTC with an offset beside them; what ends in _local is the person's own clock.
- Missing is not zero. Before a mean is taken, or a day is called empty, coverage says whether it was read at all.
- Compare a person with what is usual for them (baselines: median_28, mad_28, robust_z_28), not with others. Call a value unusual, never bad; this is no diagnosis.
- An answer may be cut, and then says so: count and group in SQL, and never treat a cut answer as the whole.`;
}

/** What is done about an error, as far as its own sentence does not say it. */
export function adviceFor(message: string): string {
  if (/^(Catalog|Binder) Error/.test(message)) return ' list_tables and describe_table show the names there are.';
  if (/^there is no table, view or macro/.test(message)) return ' list_tables lists them all.';
  if (/^Permission Error/.test(message)) return ' Only the tables of list_tables can be read: no file, no network, no setting.';
  return '';
}

interface Question {
  name: string;
  title: string;
  description: string;
  /** Whether it is about one person. */
  ofPerson: boolean;
  text: (whom: string) => string;
}

export const QUESTIONS: readonly Question[] = [
  {
    name: 'last-night',
    title: 'How was last night?',
    description: 'The newest night against what is usual for the person',
    ofPerson: true,
    text: whom =>
      `How was the last night of ${whom}? Use the tool night. Say when it was, how long the sleep and its stages were, and what is unusual: where robust_z_28 is 2 or more, of either sign. If the newest night is older than yesterday, say so, and ask coverage why.`,
  },
  {
    name: 'trend',
    title: 'Where is it going?',
    description: 'Sleep, heart rate and its variability of the last three months',
    ofPerson: true,
    text: whom =>
      `How have sleep, lowest heart rate, heart rate variability and temperature of ${whom} developed over the last 90 days? Query weekly and baselines, and say of how many days there are values. Name weeks that differ from the others, and what tags, workouts and stress say of them.`,
  },
  {
    name: 'missing',
    title: 'What is missing, and why?',
    description: 'Days without data, and the reason of each',
    ofPerson: true,
    text: whom =>
      `Which days of ${whom} are missing in the last 31 days, and why? Use the tool coverage. Tell apart: nothing at the service, not authorised, failed, not asked yet; and what is to be done about it.`,
  },
  {
    name: 'group',
    title: 'How is the group?',
    description: 'Everybody at a glance: who is behind, and who differs from their usual',
    ofPerson: false,
    text: () =>
      'How is everybody? List with list_people who has no night of yesterday, ask coverage why, and query baselines of the newest day of each for what is unusual (robust_z_28 of 3 or more, of either sign). Short, most in need first.',
  },
];
