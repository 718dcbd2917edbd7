import { afterAll } from 'vitest';
import { killStarted } from './ringneck.ts';

// Files share a process, and with it what they import: only a setup file of vitest is run anew for each of them.
afterAll(killStarted);
