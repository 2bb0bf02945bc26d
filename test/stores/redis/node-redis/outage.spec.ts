import './over.js';
import '../outage.spec.js';
