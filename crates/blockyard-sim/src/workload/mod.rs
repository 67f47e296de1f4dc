//! What a job instance asks for, I/O by I/O.
