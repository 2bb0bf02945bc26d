import { Redlock } from '@sesamecare-oss/redlock';
import { openWith } from './redlock-family.mjs';

export const open = (options) => openWith(Redlock, '@sesamecare-oss/redlock', options);
