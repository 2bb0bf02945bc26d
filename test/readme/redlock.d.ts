/** Its package names no types for its entry. */
declare module 'redlock' {
  export { Redlock as default } from '@sesamecare-oss/redlock';
}
