import { startPage } from './page.js';
import { serverAt } from './server.js';

startPage(serverAt(location.pathname.replace(/\/+$/, '')));
