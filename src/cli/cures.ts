/** What is to be done, where more than one command says it. */

export const READ_MISSING = 'What is missing is read by: ringneck coverage --repair';
