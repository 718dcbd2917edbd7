import { z } from 'zod';
import { choice, day, identifier, instant, number, text } from '../fields.ts';
import { resource } from '../resource.ts';

export const workout = resource({
  path: 'workout',
  dataType: 'workout',
  summary: 'A workout, as the ring found it or the person told of it. A day can have several.',
  scope: 'workout',
  specified: [],
  endDay: 'excluded',
  startsAt: 'start_datetime',
  document: z.object({
    id: identifier('Identifier of the document'),
    activity: text('Kind of workout, in an open list of words: walking, running, cycling …'),
    calories: number('Energy spent by the workout', 'kcal').nullish(),
    day: day('Day on which the workout started'),
    distance: number('Distance covered', 'm').nullish(),
    end_datetime: instant('When the workout ended'),
    intensity: choice(['easy', 'moderate', 'hard'], 'How hard it was'),
    label: text('Name that the person gave it').nullish(),
    source: choice(['manual', 'autodetected', 'confirmed', 'workout_heart_rate'], 'How the workout came about'),
    start_datetime: instant('When the workout started'),
  }),
});
