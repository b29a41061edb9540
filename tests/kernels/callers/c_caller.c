/* An extension that calls tilesmith's kernels on buffers, without the GIL and without NumPy. */
#define PY_SSIZE_T_CLEAN
#include "tilesmith.h"

static ts_array array_of(const Py_buffer *buffer)
{
    return (ts_array){buffer->buf, buffer->ndim, (const int64_t *)buffer->shape,
                      (const int64_t *)buffer->strides};
}

/* softmax(x, y, num_threads): float32, into y. */
static PyObject *softmax(PyObject *self, PyObject *arguments)
{
    Py_buffer x, y;
    PyObject *from, *to;
    int num_threads, status;
    (void)self;
    if (!PyArg_ParseTuple(arguments, "OOi", &from, &to, &num_threads))
        return NULL;
    if (PyObject_GetBuffer(from, &x, PyBUF_STRIDED_RO) < 0)
        return NULL;
    if (PyObject_GetBuffer(to, &y, PyBUF_STRIDED) < 0) {
        PyBuffer_Release(&x);
        return NULL;
    }
    const ts_array input = array_of(&x), output = array_of(&y);
    Py_BEGIN_ALLOW_THREADS
    status = tilesmith_softmax_float32(&input, &output, num_threads);
    Py_END_ALLOW_THREADS
    PyBuffer_Release(&x);
    PyBuffer_Release(&y);
    if (tilesmith_raise(status) < 0)
        return NULL;
    Py_RETURN_NONE;
}

/* clamped(low): [-1, 0.5, 3] limited to [low, 2], by arrays of C. */
static PyObject *clamped(PyObject *self, PyObject *low)
{
    const double x[] = {-1, 0.5, 3};
    double y[3];
    const int64_t shape[] = {3};
    const ts_array input = {(void *)x, 1, shape, NULL}, output = {y, 1, shape, NULL};
    const double least = PyFloat_AsDouble(low);
    (void)self;
    if (tilesmith_raise(tilesmith_clamp_float64(&input, &output, least, 2, 1)) < 0)
        return NULL;
    return Py_BuildValue("ddd", y[0], y[1], y[2]);
}

static PyObject *import_kernels(PyObject *self, PyObject *none)
{
    (void)self, (void)none;
    if (import_tilesmith() < 0)
        return NULL;
    Py_RETURN_NONE;
}

static PyMethodDef methods[] = {{"softmax", softmax, METH_VARARGS, NULL},
                                {"clamped", clamped, METH_O, NULL},
                                {"import_kernels", import_kernels, METH_NOARGS, NULL},
                                {NULL, NULL, 0, NULL}};

static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, "c_caller", NULL, -1, methods,
                                    NULL, NULL, NULL, NULL};

PyMODINIT_FUNC PyInit_c_caller(void) { return PyModule_Create(&module); }
