/* The interpreter of a tree, which the starter runs: CPython in one program, and what begins the modules that PyInstaller
 * froze.
 *
 * Distributions build the shared library of CPython without the profile that their own program is built with. So it is
 * linked from the static library, which that program is made of: a tenth less work for all that Python does.
 *
 * It takes nothing from the system's Python, the environment or the command line: modules come from the tree alone.
 */
#include <Python.h>
#include <marshal.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { CANNOT_EXECUTE = 126 };

/* What is appended to the path of the tree. */
#define INSIDE "_internal"
#define BASE INSIDE "/base_library.zip"
#define MODULES INSIDE "/modules.pyz"
#define BEGIN INSIDE "/begin"
static const char *const PLACES[] = {BASE, INSIDE "/" LIBRARY "/lib-dynload", INSIDE};
static const char *const FILES[] = {BASE, MODULES, BEGIN};
/* PyInstaller's finder reads an offset behind the last question mark, which a folder's name may have too. */
#define OFFSET "?0"

enum { LONGEST_NAME = 64 };
static char program[PATH_MAX], place[PATH_MAX + LONGEST_NAME];

static _Noreturn void fail(const char *why) {
    fprintf(stderr, "beetle: cannot execute %s: %s\n", program, why);
    fputs("remove the folder of this program, and the next start of the one file unpacks it again\n", stderr);
    exit(CANNOT_EXECUTE);
}

static void check(PyStatus status) {
    if (PyStatus_Exception(status))
        fail(status.err_msg != NULL ? status.err_msg : "Python does not start");
}

/* The path of a file of the tree, until the next call. */
static const char *in_tree(const char *name) {
    const size_t length = (size_t)(strrchr(program, '/') + 1 - program);
    memcpy(place, program, length);
    strcpy(place + length, name);
    return place;
}

static void find_program(void) {
    const ssize_t length = readlink("/proc/self/exe", program, sizeof program - 1);
    program[length > 0 ? length : 0] = '\0';
    if (strrchr(program, '/') == NULL)
        fail("/proc/self/exe does not name it; mount /proc");
    for (size_t i = 0; i < sizeof FILES / sizeof *FILES; i++)
        if (access(in_tree(FILES[i]), R_OK) != 0)
            fail("a file of its folder cannot be read");
}

static void set(PyConfig *config, wchar_t **field, const char *value) {
    check(PyConfig_SetBytesString(config, field, value));
}

static void add_place(PyConfig *config, const char *name) {
    wchar_t *decoded = Py_DecodeLocale(in_tree(name), NULL);
    if (decoded == NULL)
        fail("there is no memory");
    check(PyWideStringList_Append(&config->module_search_paths, decoded));
    PyMem_RawFree(decoded);
}

static void start(int argc, char **argv) {
    PyPreConfig early;
    PyPreConfig_InitIsolatedConfig(&early);
    /* File names and pipes are UTF-8 whatever the locale says: a service manager starts us with none. */
    early.utf8_mode = 1;
    early.configure_locale = 1;
    check(Py_PreInitialize(&early));

    PyConfig config;
    PyConfig_InitIsolatedConfig(&config);
    config.optimization_level = 2;
    config.site_import = 0;
    config.write_bytecode = 0;
    config.install_signal_handlers = 1;
    config.parse_argv = 0;
    wchar_t **const programs[] = {&config.program_name, &config.executable, &config.base_executable};
    for (size_t i = 0; i < sizeof programs / sizeof *programs; i++)
        set(&config, programs[i], program);
    /* Not by `home`, which a colon divides. */
    wchar_t **const tops[] = {&config.prefix, &config.exec_prefix, &config.base_prefix, &config.base_exec_prefix};
    for (size_t i = 0; i < sizeof tops / sizeof *tops; i++)
        set(&config, tops[i], in_tree(INSIDE));
    check(PyConfig_SetBytesArgv(&config, argc, argv));
    config.module_search_paths_set = 1;
    for (size_t i = 0; i < sizeof PLACES / sizeof *PLACES; i++)
        add_place(&config, PLACES[i]);
    check(Py_InitializeFromConfig(&config));
    PyConfig_Clear(&config);
}

static PyObject *checked(PyObject *object) {
    if (object == NULL) {
        PyErr_Print();
        fail("it cannot begin");
    }
    return object;
}

static void tell(const char *name, const char *path) {
    PyObject *text = checked(PyUnicode_DecodeFSDefault(path));
    if (PySys_SetObject(name, text) != 0)
        checked(NULL);
    Py_DECREF(text);
}

static int is_module(PyObject *pair) {
    return PyTuple_CheckExact(pair) && PyTuple_GET_SIZE(pair) == 2 && PyUnicode_CheckExact(PyTuple_GET_ITEM(pair, 0)) &&
           PyBytes_CheckExact(PyTuple_GET_ITEM(pair, 1));
}

/* The modules that begin, in order, as packaging/complete.py writes them: pairs of a name and marshalled code. */
static PyObject *read_begin(void) {
    FILE *file = fopen(in_tree(BEGIN), "rbe");
    if (file == NULL)
        fail(BEGIN " cannot be opened");
    PyObject *modules = checked(PyMarshal_ReadLastObjectFromFile(file));
    fclose(file);
    const Py_ssize_t count = PyTuple_CheckExact(modules) ? PyTuple_GET_SIZE(modules) : 0;
    if (count == 0)
        fail(BEGIN " is damaged");
    for (Py_ssize_t i = 0; i < count; i++)
        if (!is_module(PyTuple_GET_ITEM(modules, i)))
            fail(BEGIN " is damaged");
    return modules;
}

/* Runs the program, which is the last of the modules; its exit code. A SystemExit ends the process within PyErr_Print. */
static int run(PyObject *modules) {
    const Py_ssize_t last = PyTuple_GET_SIZE(modules) - 1;
    PyObject *names = PyModule_GetDict(checked(PyImport_AddModule("__main__"))), *ran = NULL;
    for (Py_ssize_t i = 0; i <= last; i++) {
        PyObject *pair = PyTuple_GET_ITEM(modules, i), *data = PyTuple_GET_ITEM(pair, 1);
        PyObject *code = checked(PyMarshal_ReadObjectFromString(PyBytes_AS_STRING(data), PyBytes_GET_SIZE(data)));
        if (i < last)
            ran = checked(PyImport_ExecCodeModule(PyUnicode_AsUTF8(PyTuple_GET_ITEM(pair, 0)), code));
        else if ((ran = PyEval_EvalCode(code, names, names)) == NULL)
            PyErr_Print();
        Py_DECREF(code);
        Py_XDECREF(ran);
    }
    return ran == NULL ? EXIT_FAILURE : EXIT_SUCCESS;
}

int main(int argc, char **argv) {
    find_program();
    start(argc, argv);
    tell("_MEIPASS", in_tree(INSIDE));
    tell("_pyinstaller_pyz", in_tree(MODULES OFFSET));
    PyObject *modules = read_begin();
    const int code = run(modules);
    Py_DECREF(modules);
    return Py_FinalizeEx() < 0 ? EXIT_FAILURE : code;
}
