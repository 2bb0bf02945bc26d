/* Loaded before libc: the wall clock is wrong by as many milliseconds as the file named by CHAOS_CLOCK says. The monotonic clock stays right. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

typedef int (*clock_gettime_fn)(clockid_t, struct timespec *);

static long long offset_ms(void) {
  static int fd = -2;
  if (fd == -2) {
    const char *file = getenv("CHAOS_CLOCK");
    fd = file ? open(file, O_RDONLY | O_CLOEXEC) : -1;
  }
  char text[32];
  ssize_t length = fd < 0 ? 0 : pread(fd, text, sizeof text - 1, 0);
  if (length <= 0) return 0;
  text[length] = 0;
  return atoll(text);
}

int clock_gettime(clockid_t id, struct timespec *time) {
  static clock_gettime_fn real;
  if (!real) real = (clock_gettime_fn)dlsym(RTLD_NEXT, "clock_gettime");
  int result = real(id, time);
  if (result == 0 && (id == CLOCK_REALTIME || id == CLOCK_REALTIME_COARSE)) {
    long long ns = (long long)time->tv_sec * 1000000000LL + time->tv_nsec + offset_ms() * 1000000LL;
    time->tv_sec = ns / 1000000000LL;
    time->tv_nsec = ns % 1000000000LL;
  }
  return result;
}

int gettimeofday(struct timeval *restrict time, void *restrict zone) {
  (void)zone;
  struct timespec now;
  int result = clock_gettime(CLOCK_REALTIME, &now);
  time->tv_sec = now.tv_sec;
  time->tv_usec = now.tv_nsec / 1000;
  return result;
}

time_t time(time_t *result) {
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  if (result) *result = now.tv_sec;
  return now.tv_sec;
}
