import './over.js';
import '../wake-ups.spec.js';
