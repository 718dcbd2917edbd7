const KEY = 'ringneck-letter-keys';

/** Whether keys of one character do something: who dictates, or hits them by mistake, turns that off in this browser. */
export const areLetterKeysOn = (): boolean => localStorage.getItem(KEY) !== 'off';

export const setLetterKeys = (isOn: boolean): void => localStorage.setItem(KEY, isOn ? 'on' : 'off');
