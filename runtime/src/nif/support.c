/* The functions of the interface that Rust cannot define: those with a variable number of arguments, and those whose
 * frames a thread may leave without a return. */

#include <pthread.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef uint64_t term;
struct env;

term enif_make_tuple_from_array(struct env *env, const term *array, unsigned count);
term enif_make_list_from_array(struct env *env, const term *array, unsigned count);
size_t beamline_nif_print(term term, char *to, size_t room);
int beamline_nif_set_callback(struct env *env, int option, void *callback);
void beamline_nif_this(void *thread);

/* Few arguments are collected on the stack. */
enum { FEW = 32 };

typedef term (*make)(struct env *, const term *, unsigned);

static term make_of(struct env *env, unsigned count, va_list arguments, make make)
{
    term few[FEW] = {0};
    term *all = count <= FEW ? few : malloc(count * sizeof(term));
    for (unsigned i = 0; i < count; i++)
        all[i] = va_arg(arguments, term);
    term made = make(env, all, count);
    if (all != few)
        free(all);
    return made;
}

term enif_make_tuple(struct env *env, unsigned count, ...)
{
    va_list arguments;
    va_start(arguments, count);
    term made = make_of(env, count, arguments, enif_make_tuple_from_array);
    va_end(arguments);
    return made;
}

term enif_make_list(struct env *env, unsigned count, ...)
{
    va_list arguments;
    va_start(arguments, count);
    term made = make_of(env, count, arguments, enif_make_list_from_array);
    va_end(arguments);
    return made;
}

/* Options: 1 delays a halt, 2 and 3 take a callback. */
int enif_set_option(struct env *env, int option, ...)
{
    va_list arguments;
    va_start(arguments, option);
    void *callback = option == 1 ? NULL : va_arg(arguments, void *);
    va_end(arguments);
    return beamline_nif_set_callback(env, option, callback);
}

/* What is printed so far. */
struct text {
    char *bytes;
    size_t length, room;
};

static void reserve(struct text *text, size_t more)
{
    if (text->length + more + 1 <= text->room)
        return;
    text->room = (text->length + more + 1) * 2;
    text->bytes = realloc(text->bytes, text->room);
    if (text->bytes == NULL)
        abort();
}

static void append(struct text *text, const char *bytes, size_t length)
{
    reserve(text, length);
    memcpy(text->bytes + text->length, bytes, length);
    text->length += length;
}

static void append_term(struct text *text, term term)
{
    size_t length = beamline_nif_print(term, NULL, 0);
    reserve(text, length);
    beamline_nif_print(term, text->bytes + text->length, length);
    text->length += length;
}

/* Prints one argument as `spec` says. */
#define PRINT(argument)                                                                     \
    do {                                                                                    \
        __typeof__(argument) value = (argument);                                            \
        int length = snprintf(NULL, 0, spec, value);                                        \
        if (length < 0)                                                                     \
            return -1;                                                                      \
        reserve(text, (size_t)length);                                                      \
        snprintf(text->bytes + text->length, (size_t)length + 1, spec, value);              \
        text->length += (size_t)length;                                                     \
    } while (0)

/* Prints one integer of the size that `longs` says. */
static int print_integer(struct text *text, const char *spec, int longs, int is_size, va_list *arguments)
{
    if (is_size)
        PRINT(va_arg(*arguments, size_t));
    else if (longs == 0)
        PRINT(va_arg(*arguments, int));
    else if (longs == 1)
        PRINT(va_arg(*arguments, long));
    else
        PRINT(va_arg(*arguments, long long));
    return 0;
}

static int print_one(struct text *text, const char *spec, char conversion, int longs, int is_size, int is_long_double,
                     va_list *arguments)
{
    switch (conversion) {
    case 'd': case 'i': case 'o': case 'u': case 'x': case 'X':
        return print_integer(text, spec, longs, is_size, arguments);
    case 'a': case 'A': case 'e': case 'E': case 'f': case 'F': case 'g': case 'G':
        if (is_long_double)
            PRINT(va_arg(*arguments, long double));
        else
            PRINT(va_arg(*arguments, double));
        return 0;
    case 'c':
        PRINT(va_arg(*arguments, int));
        return 0;
    case 's':
        PRINT(va_arg(*arguments, char *));
        return 0;
    case 'p':
        PRINT(va_arg(*arguments, void *));
        return 0;
    default:
        return -1;
    }
}

/* Copies flags, width, precision and size from `format` to `spec`, with numbers for stars; the conversion is next. */
static const char *read_spec(const char *format, char *spec, size_t room, int *longs, int *is_size, int *is_long_double,
                             va_list *arguments)
{
    size_t length = 0;
    spec[length++] = '%';
    for (; *format != '\0' && strchr("-+ #0123456789.*hlLqjzt", *format) != NULL; format++) {
        if (length + 24 > room)
            return NULL;
        if (*format == '*') {
            length += (size_t)snprintf(spec + length, room - length, "%d", va_arg(*arguments, int));
            continue;
        }
        *longs += *format == 'l' ? 1 : *format == 'q' || *format == 'j' ? 2 : 0;
        *is_size |= *format == 'z' || *format == 't';
        *is_long_double |= *format == 'L';
        spec[length++] = *format;
    }
    spec[length++] = *format;
    spec[length] = '\0';
    return format;
}

/* As vsnprintf(), with %T for a term. */
static int print(struct text *text, const char *format, va_list *arguments)
{
    while (*format != '\0') {
        size_t plain = strcspn(format, "%");
        append(text, format, plain);
        format += plain;
        if (*format == '\0')
            break;
        format++;
        if (*format == '%') {
            append(text, "%", 1);
            format++;
            continue;
        }
        char spec[128];
        int longs = 0, is_size = 0, is_long_double = 0;
        format = read_spec(format, spec, sizeof spec, &longs, &is_size, &is_long_double, arguments);
        if (format == NULL || *format == '\0')
            return -1;
        if (*format == 'T')
            append_term(text, va_arg(*arguments, term));
        else if (print_one(text, spec, *format, longs, is_size, is_long_double, arguments) < 0)
            return -1;
        format++;
    }
    return 0;
}

int enif_vsnprintf(char *to, size_t size, const char *format, va_list arguments)
{
    struct text text = {NULL, 0, 0};
    va_list copy;
    va_copy(copy, arguments);
    reserve(&text, 0);
    int failed = print(&text, format, &copy);
    va_end(copy);
    if (size > 0) {
        size_t length = text.length < size ? text.length : size - 1;
        memcpy(to, text.bytes, length);
        to[length] = '\0';
    }
    free(text.bytes);
    return failed < 0 ? failed : (int)text.length;
}

int enif_vfprintf(FILE *file, const char *format, va_list arguments)
{
    struct text text = {NULL, 0, 0};
    va_list copy;
    va_copy(copy, arguments);
    reserve(&text, 0);
    int failed = print(&text, format, &copy);
    va_end(copy);
    if (fwrite(text.bytes, 1, text.length, file) < text.length)
        failed = -1;
    free(text.bytes);
    return failed < 0 ? failed : (int)text.length;
}

int enif_snprintf(char *to, size_t size, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    int length = enif_vsnprintf(to, size, format, arguments);
    va_end(arguments);
    return length;
}

int enif_fprintf(FILE *file, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    int length = enif_vfprintf(file, format, arguments);
    va_end(arguments);
    return length;
}

/* A thread that a library makes. */
struct start {
    void *(*function)(void *);
    void *argument;
    void *thread;
};

void *beamline_nif_thread(void *given)
{
    struct start start = *(struct start *)given;
    free(given);
    beamline_nif_this(start.thread);
    return start.function(start.argument);
}

void enif_thread_exit(void *result)
{
    pthread_exit(result);
}

void erl_drv_thread_exit(void *result)
{
    pthread_exit(result);
}
