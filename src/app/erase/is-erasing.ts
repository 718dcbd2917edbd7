import { existsSync } from 'node:fs';
import { join } from 'node:path';

/** Lies in a data folder from the beginning of an erasing to its end. */
export const markerPath = (folder: string) => join(folder, 'erasing.json');

/** What an erasing by a version without an inbox has set aside. */
export const asidePath = (folder: string) => join(folder, 'erasing-events.json');

/** Whether an account is being erased, or was when a process ended. */
export const isErasing = (folder: string): boolean => existsSync(markerPath(folder));
