require('reflect-metadata');
const { Injectable, Module } = require('@nestjs/common');
const { NestFactory } = require('@nestjs/core');
const { currentLease, DistributedLock, DistributedLockModule } = require('nestjs-distributed-lock');
const { memoryStore } = require('nestjs-distributed-lock/memory');
const scenario = require('./nest-scenario.cjs');

void scenario({ Injectable, Module, NestFactory, DistributedLockModule, memoryStore, copies: [{ DistributedLock, currentLease }] });
