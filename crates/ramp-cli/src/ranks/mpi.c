/* The calls of MPI that ranks make. Errors end all processes (MPI's default), so none is returned. */

#include <mpi.h>
#include <stdint.h>

/* Starts MPI for calls from any thread, one at a time; zero if it cannot. */
int ramp_mpi_start(int *rank, int *ranks) {
    int given = MPI_THREAD_SINGLE;
    if (MPI_Init_thread(NULL, NULL, MPI_THREAD_SERIALIZED, &given) != MPI_SUCCESS) {
        return 0;
    }
    MPI_Comm_rank(MPI_COMM_WORLD, rank);
    MPI_Comm_size(MPI_COMM_WORLD, ranks);
    return given >= MPI_THREAD_SERIALIZED;
}

void ramp_mpi_end(void) { MPI_Finalize(); }

void ramp_mpi_abort(int code) { MPI_Abort(MPI_COMM_WORLD, code); }

void ramp_mpi_all_gather(unsigned char *buffer, const int *counts, const int *starts) {
    MPI_Allgatherv(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, buffer, counts, starts, MPI_BYTE, MPI_COMM_WORLD);
}

void ramp_mpi_all_to_all(const unsigned char *send, const int *send_counts, const int *send_starts, unsigned char *receive,
                         const int *receive_counts, const int *receive_starts) {
    MPI_Alltoallv(send, send_counts, send_starts, MPI_BYTE, receive, receive_counts, receive_starts, MPI_BYTE, MPI_COMM_WORLD);
}

void ramp_mpi_broadcast(unsigned char *buffer, int count) { MPI_Bcast(buffer, count, MPI_BYTE, 0, MPI_COMM_WORLD); }

void ramp_mpi_maximum(uint64_t *value) { MPI_Allreduce(MPI_IN_PLACE, value, 1, MPI_UINT64_T, MPI_MAX, MPI_COMM_WORLD); }
