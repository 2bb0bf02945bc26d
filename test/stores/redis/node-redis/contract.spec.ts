import './over.js';
import '../../redis.contract.spec.js';
