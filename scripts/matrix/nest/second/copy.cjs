// Stands in a folder with an installation of its own.
const lock = require('nestjs-distributed-lock');
const { memoryStore } = require('nestjs-distributed-lock/memory');
const { redisStore } = require('nestjs-distributed-lock/redis');

module.exports = { lock, memoryStore, redisStore };
