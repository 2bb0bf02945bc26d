import './over.js';
import '../lost-replies.spec.js';
