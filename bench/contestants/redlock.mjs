import Redlock from 'redlock';
import { openWith } from './redlock-family.mjs';

export const open = (options) => openWith(Redlock, 'redlock', options);
