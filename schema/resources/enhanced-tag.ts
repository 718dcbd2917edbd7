import { z } from 'zod';
import { day, identifier, instant, text } from '../fields.ts';
import { resource } from '../resource.ts';

export const enhancedTag = resource({
  path: 'enhanced_tag',
  dataType: 'enhanced_tag',
  summary: 'What a person noted: a word from a list, or words of their own.',
  scope: 'tag',
  specified: [],
  endDay: 'included',
  dayField: 'start_day',
  startsAt: 'start_time',
  document: z.object({
    id: identifier('Identifier of the document'),
    comment: text('What the person wrote about it').nullish(),
    custom_name: text('Name of a kind of the person’s own').nullish(),
    end_day: day('Day on which it ended, of what lasts').nullish(),
    end_time: instant('When it ended, of what lasts').nullish(),
    start_day: day('Day on which it was, or began'),
    start_time: instant('When it was, or began'),
    tag_type_code: text('Kind of tag: a word of the service, custom for a kind of the person’s own; null for a comment alone').nullish(),
  }),
});
