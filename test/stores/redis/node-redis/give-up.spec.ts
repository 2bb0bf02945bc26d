import './over.js';
import '../give-up.spec.js';
