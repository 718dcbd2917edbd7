import { existsSync } from 'node:fs';
import { join } from 'node:path';

/** Lies in a data folder from the beginning of a move to its end. */
export const movePath = (folder: string) => join(folder, 'moving.json');

/** What a folder is closed for. */
export type Doing = 'erased from' | 'moved in';

/** Why nothing can be asked of a folder now. */
export const tellClosed = (doing: Doing, folder: string): string => `an account is being ${doing} ${folder}; try again in a moment`;

/** Whether an account is getting another name, or was when a process ended. */
export const isMoving = (folder: string): boolean => existsSync(movePath(folder));
